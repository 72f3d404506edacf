"""Stand-ins for other services, runs of other libraries, and data for tests of adapters.

The constants are scripts that tests run as processes of their own.
"""

from pathlib import Path

OPTUNA_WORKER = Path(__file__).with_name("optuna_worker.py")
XGBOOST_WORKER = Path(__file__).with_name("xgboost_worker.py")
