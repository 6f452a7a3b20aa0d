# A tenant as the provider manages it: each kind of resource that most tenants have.
terraform {
  required_providers {
    auth0 = { source = "auth0/auth0" }
  }
}

# Domain and credentials come from AUTH0_DOMAIN, AUTH0_CLIENT_ID and AUTH0_CLIENT_SECRET.
provider "auth0" {}

variable "changed" {
  type    = bool
  default = false
}

locals {
  suffix = var.changed ? " changed" : ""
}

resource "auth0_tenant" "tenant" {
  friendly_name         = "Terraform${local.suffix}"
  session_lifetime      = 24
  idle_session_lifetime = 12
}

resource "auth0_client" "web" {
  name            = "Terraform web${local.suffix}"
  app_type        = "regular_web"
  oidc_conformant = true
  callbacks       = ["https://web.example.test/callback"]
  grant_types     = ["authorization_code", "refresh_token", "client_credentials"]
  refresh_token {
    rotation_type   = "rotating"
    expiration_type = "expiring"
    leeway          = 10
    token_lifetime  = 86400
  }
}

resource "auth0_client_credentials" "web" {
  client_id             = auth0_client.web.id
  authentication_method = "client_secret_basic"
}

resource "auth0_resource_server" "api" {
  name           = "Terraform API${local.suffix}"
  identifier     = "https://terraform.example.test/api"
  token_lifetime = 3600
}

resource "auth0_resource_server_scopes" "api" {
  resource_server_identifier = auth0_resource_server.api.identifier
  scopes {
    name        = "read:things"
    description = "Read things"
  }
  scopes {
    name        = "write:things"
    description = "Write things"
  }
}

resource "auth0_client_grant" "web" {
  client_id  = auth0_client.web.id
  audience   = auth0_resource_server.api.identifier
  scopes     = var.changed ? ["read:things", "write:things"] : ["read:things"]
  depends_on = [auth0_resource_server_scopes.api]
}

resource "auth0_connection" "people" {
  name     = "terraform-people"
  strategy = "auth0"
  options {
    password_policy        = "good"
    brute_force_protection = true
    disable_signup         = var.changed
  }
}

resource "auth0_connection_clients" "people" {
  connection_id   = auth0_connection.people.id
  enabled_clients = [auth0_client.web.id]
}

resource "auth0_connection" "partner" {
  name         = "terraform-partner"
  display_name = "Partner${local.suffix}"
  strategy     = "oidc"
  options {
    type                   = "back_channel"
    issuer                 = "https://idp.example.test"
    authorization_endpoint = "https://idp.example.test/authorize"
    token_endpoint         = "https://idp.example.test/token"
    jwks_uri               = "https://idp.example.test/jwks"
    client_id              = "terraform"
    client_secret          = "a-secret-at-the-partner"
    scopes                 = ["openid", "profile", "email"]
  }
}

resource "auth0_role" "reader" {
  name        = "terraform-reader"
  description = "Reads${local.suffix}"
}

resource "auth0_role_permissions" "reader" {
  role_id = auth0_role.reader.id
  permissions {
    name                       = "read:things"
    resource_server_identifier = auth0_resource_server.api.identifier
  }
  depends_on = [auth0_resource_server_scopes.api]
}

resource "auth0_user" "ada" {
  connection_name = auth0_connection.people.name
  email           = "ada@terraform.example.test"
  email_verified  = true
  password        = "A-long-Passw0rd!"
  nickname        = "Ada${local.suffix}"
  user_metadata   = jsonencode({ plan = "free" })
  depends_on      = [auth0_connection_clients.people]
}

resource "auth0_user_roles" "ada" {
  user_id = auth0_user.ada.id
  roles   = [auth0_role.reader.id]
}

resource "auth0_organization" "team" {
  name         = "terraform-team"
  display_name = "Team${local.suffix}"
}

resource "auth0_organization_connection" "team" {
  organization_id            = auth0_organization.team.id
  connection_id              = auth0_connection.people.id
  assign_membership_on_login = var.changed
}

resource "auth0_organization_member" "ada" {
  organization_id = auth0_organization.team.id
  user_id         = auth0_user.ada.id
}

resource "auth0_action" "claims" {
  name    = "Terraform claims"
  runtime = "node22"
  deploy  = true
  code    = "exports.onExecutePostLogin = async (event, api) => { api.idToken.setCustomClaim('https://a.example.test/x', ${var.changed}); };"
  supported_triggers {
    id      = "post-login"
    version = "v3"
  }
  secrets {
    name  = "KEY"
    value = "value"
  }
}

resource "auth0_trigger_actions" "login" {
  trigger = "post-login"
  actions {
    id           = auth0_action.claims.id
    display_name = auth0_action.claims.name
  }
}

resource "auth0_attack_protection" "protection" {
  brute_force_protection {
    enabled      = true
    max_attempts = var.changed ? 5 : 10
    mode         = "count_per_identifier_and_ip"
    shields      = ["block", "user_notification"]
  }
  suspicious_ip_throttling {
    enabled = true
    shields = ["admin_notification", "block"]
  }
}

resource "auth0_guardian" "guardian" {
  policy        = var.changed ? "all-applications" : "confidence-score"
  otp           = true
  email         = true
  recovery_code = true
}

resource "auth0_branding" "branding" {
  logo_url = "https://example.test/logo.png"
  colors {
    primary         = var.changed ? "#123456" : "#0059d6"
    page_background = "#ffffff"
  }
}

resource "auth0_log_stream" "siem" {
  name = "Terraform SIEM${local.suffix}"
  type = "http"
  sink {
    http_endpoint       = "https://siem.example.test/events"
    http_content_type   = "application/json"
    http_content_format = "JSONLINES"
    http_authorization  = "Bearer siem"
  }
}

resource "auth0_email_provider" "mail" {
  name                 = "smtp"
  enabled              = true
  default_from_address = "login@example.test"
  credentials {
    smtp_host = "smtp.example.test"
    smtp_port = 587
    smtp_user = "user"
    smtp_pass = "password"
  }
}

resource "auth0_prompt_custom_text" "login" {
  prompt   = "login"
  language = "en"
  body     = jsonencode({ login = { title = "Welcome${local.suffix}" } })
}

data "auth0_client" "web" {
  client_id = auth0_client.web.id
}
