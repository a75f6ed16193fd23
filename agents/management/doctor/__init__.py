"""What `manage.py doctor` looks at; each check answers with findings, one line each."""
