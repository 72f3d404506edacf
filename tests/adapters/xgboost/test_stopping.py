def test_it_is_there():
    import xgboost

    assert xgboost.__version__
