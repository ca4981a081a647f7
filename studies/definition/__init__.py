"""What a study is: its file, the space that it searches, and the trials that it plans."""
