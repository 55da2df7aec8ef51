"""Time in which gpuhunt reads an AWS price list CSV: the file alone, without its questions to AWS.

    python gpuhunt_aws.py index.csv [ROUNDS]

Prints the fastest round in seconds and the number of offers it finds.
"""

import sys
import time

from gpuhunt.providers.aws import AWSProvider

path = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
provider = AWSProvider(cache_path=path)
# Both ask AWS with an account's credentials; what is measured here is the file.
provider._fill_gpu_details = lambda offers: None
provider._with_spot_offers = lambda offers: offers

fastest, found = float("inf"), 0
for _ in range(rounds):
    started = time.perf_counter()
    found = len(provider.get())
    fastest = min(fastest, time.perf_counter() - started)
print(f"{fastest:.3f} {found}")
