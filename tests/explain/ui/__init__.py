"""The pages of the web server, from given data, and the server itself."""
