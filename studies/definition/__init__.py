"""What a study is: its file, the space that it searches, and who proposes configurations."""
