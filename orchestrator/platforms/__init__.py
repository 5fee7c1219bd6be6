"""What an operating system lets us read, hold steady and trace."""
