"""Evidence to verdict; one file a clause."""
