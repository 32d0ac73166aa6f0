"""The database in SQL: `tables/` are numbered migrations, `functions/` is the current text of every other function.

A migration is a file `tables/NNNN_name.py` that runs `tables/NNNN_name.sql`; never change one that was released. What columns, policies and
triggers need by name (`search_vector`, `current_agent`, `wordless`, trigger functions) is made by migrations, with its table. Everything in
`functions/` is dropped and made again whenever a word of the folder changed, in any order; no migration may need it. `memory/migrations.py`
does both, and `grants.sql` ends both. `listing.sql` is how two schemas are compared.
"""
