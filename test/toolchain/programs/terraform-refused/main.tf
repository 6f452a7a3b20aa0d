# What a server refuses by name: a root key of one's own.
terraform {
  required_providers {
    auth0 = { source = "auth0/auth0" }
  }
}

provider "auth0" {}

resource "auth0_encryption_key_manager" "own" {
  customer_provided_root_key {}
}
