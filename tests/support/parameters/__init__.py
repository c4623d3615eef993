"""What chooses the parameters of tests."""
