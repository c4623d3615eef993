"""The image that `make image` builds: its containers, as compose.yaml and the command line start them."""
