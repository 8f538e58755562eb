"""Where programs start: settings, the composition root, the server, the worker, the CLI."""
