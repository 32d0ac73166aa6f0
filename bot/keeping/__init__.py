"""What is kept of what people say, for how long, and what they are told of it.

decision   keep this or not? One pure function; secrets recognises what is never stored
keeper     asks it for every candidate; consent asks the person where they must say yes first
notice     what people are told at the first contact
retention  what goes by itself with time; erasures what a restored backup must not bring back
sections   their part of the configuration
"""
