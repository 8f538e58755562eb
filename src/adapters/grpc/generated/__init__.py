"""Code written by protoc; `make proto` makes it anew."""
