"""What each role may do at the brokers: the one table of the minimal ACLs, and the line about one that is missing."""
