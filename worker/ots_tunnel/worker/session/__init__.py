"""One connected client: heartbeats, the channels that they bring and take away, and whether the tunnel is complete."""
