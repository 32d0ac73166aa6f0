"""What measures quality and speed: `bot bench NAME`, loaded only when asked for."""
