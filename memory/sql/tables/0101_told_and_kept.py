"""What the prompt shows, what is withheld from it, where texts came from, what people decided, and their appointments."""

from memory.sql.plain_sql import run

revision = "0101"
down_revision = "0100"


def upgrade() -> None:
    run(
        "0101/shown.sql",
        "0101/withheld.sql",
        "0101/decided.sql",
        "0101/forgetting.sql",
        "0101/appointments.sql",
        "0101/living.sql",
        "0101/search.sql",
        "0101/documents.sql",
    )
