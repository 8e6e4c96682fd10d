"""The tube's surface as triangles, laid straight from its dimensions. No kernel."""
