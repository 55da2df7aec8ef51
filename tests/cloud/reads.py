"""Another program reads the tables from the store by itself: the rows and versions of `offers`, as JSON."""

import json
import os
import sys

from deltalake import DeltaTable

options = {
    "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": os.environ["AWS_REGION"],
    "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
    "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
}
table = DeltaTable(f"{sys.argv[1]}/offers", storage_options=options)
actions = table.get_add_actions(flatten=True)
counts = [actions.column("num_records")[index].as_py() for index in range(actions.num_rows)]
print(json.dumps({"version": table.version(), "files": len(table.file_uris()), "rows": sum(counts)}))
