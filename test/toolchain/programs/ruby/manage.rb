# frozen_string_literal: true

# Manages a tenant with the gem auth0 5, and prints a line for each step that worked.
require "auth0"

DATABASE = "Username-Password-Authentication"

def hold(holds, what)
  abort "wrong: #{what}" unless holds
end

def step(text)
  puts "step #{text}"
  $stdout.flush
end

def refused(what)
  yield
rescue Auth0::HTTPError => e
  puts "refused #{what}: #{e.http_code} #{JSON.parse(e.message)['message']}"
else
  abort "#{what} was not refused"
end

api = Auth0Client.new(
  domain: ENV.fetch("AUTH0_DOMAIN"),
  client_id: ENV.fetch("AUTH0_CLIENT_ID"),
  client_secret: ENV.fetch("AUTH0_CLIENT_SECRET")
)
puts "version #{Auth0::VERSION}"

client = api.create_client("Ruby", app_type: "regular_web", callbacks: ["https://a.example.test/cb"])
id = client["client_id"]
api.patch_client(id, description: "changed")
hold api.client(id)["description"] == "changed", "the description"
pages = (0..).lazy.map { |page| api.clients(page: page, per_page: 2) }.take_while { |page| !page.empty? }
hold pages.to_a.flatten.any? { |one| one["name"] == "Ruby" }, "the list of applications"
step "applications"

connection = api.create_connection(name: "ruby-database", strategy: "auth0", options: { passwordPolicy: "good" })
api.update_connection(connection["id"], display_name: "Changed")
hold api.connection(connection["id"])["display_name"] == "Changed", "the display name"
hold api.connections(strategy: "auth0").any? { |one| one["name"] == "ruby-database" }, "the list of connections"
step "connections"

user = api.create_user(DATABASE, email: "ruby@example.test", password: "A-long-Passw0rd!")
api.patch_user(user["user_id"], nickname: "Gem")
hold api.user(user["user_id"])["nickname"] == "Gem", "the nickname"
found = api.users(q: 'email:"ruby@example.test"', search_engine: "v3")
hold found.map { |one| one["user_id"] } == [user["user_id"]], "the search"
step "users"

organization = api.create_organization(name: "gems")
api.patch_organization(organization["id"], display_name: "Changed")
api.create_organizations_members(organization["id"], [user["user_id"]])
members = api.get_organizations_members(organization["id"])
hold members.map { |one| one["email"] } == ["ruby@example.test"], "the members"
hold api.organizations.any? { |one| one["name"] == "gems" }, "the list of organizations"
step "organizations"

refused("a second connection of the name") { api.create_connection(name: "ruby-database", strategy: "auth0") }

api.delete_organization(organization["id"])
api.delete_user(user["user_id"])
api.delete_connection(connection["id"])
api.delete_client(id)
refused("a deleted application") { api.client(id) }
step "deletions"
