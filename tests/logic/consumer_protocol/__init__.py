"""The bytes that consumers exchange, and the assignors that their leaders run."""
