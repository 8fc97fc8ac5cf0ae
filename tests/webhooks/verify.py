"""Verifies calls with the standard's own library: JSON of calls on standard input, one verdict a line on standard output."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for call in json.load(sys.stdin):
    try:
        Webhook(call["key"]).verify(call["body"], call["headers"])
        print("good")
    except WebhookVerificationError as error:
        print(f"bad: {error}")
