"""The model: one client for every OpenAI-compatible endpoint, what goes to it and what comes back.

processor  asks, with a fallback and within budgets
client     one request to one endpoint; messages makes its body, replies and stream read its answer, errors its refusals
calls      function calls, also from text (call_text)
margin     by how much an endpoint counts more than we do
endpoint   whether it answers at all, looked at when the bot starts
"""
