"""Studies and comparisons: experiment files under `comparisons/` and `papers/`, hyperparameter
searches.
"""

from pathlib import Path

COMPARISONS = Path(__file__).parent / "comparisons"
PAPERS = Path(__file__).parent / "papers"  # one file a paper: all its tables and figures
SHIPPED_NAME = "shipped"
SHIPPED = Path(__file__).parent / "shipped.tar.xz"  # the runs of comparisons/shipped.toml
SHIPPED_TABLE = SHIPPED.with_name("shipped.md")  # their table, for the documentation
CENSUS_NAME = "census"
CENSUS = SHIPPED.with_name("census.tar.xz")  # runs of comparisons/census.toml
CENSUS_TABLE = SHIPPED.with_name("census.csv")  # their scores and ranks, for the documentation
