"""What needs several reports of one fingerprint."""
