"""What comes from elsewhere: the hub, archives, and the folder that keeps them."""
