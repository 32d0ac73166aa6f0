"""What an agent remembers and what its prompt is built from.

`db` opens Postgres and names the agent of a transaction; `messages`, `working_context`, `recall_storage` and `archival_storage`
are the stores; `fifo_queue` and `main_context` decide what the model sees; `queue_manager` is the only writer of the FIFO
queue; `search`, `embedding` and `tokens` are the tools; `log` keeps who changed what and why. Nothing here imports `bot` or `adapters`.
"""
