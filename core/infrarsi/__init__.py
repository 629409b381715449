"""The domain of InfraRSI: contract, reading, judge, models, search, patches, report.

Pure functions over frozen data. Nothing here opens a file of the user's, starts a process,
reads the clock or imports an editor, cluster or GPU library.
"""
