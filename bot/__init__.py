"""The running bot: `app` composes it, `agent` thinks, `engine` carries events, `functions` act on memory, `commands` serve people."""
