"""One file a feature, registered on the server it is given. No rule is decided here."""
