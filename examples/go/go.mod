module example.test/go

go 1.26.0

require (
	github.com/auth0/go-jwt-middleware/v2 v2.3.1
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/joho/godotenv v1.5.1
	golang.org/x/oauth2 v0.38.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	golang.org/x/crypto v0.45.0 // indirect
	golang.org/x/sync v0.18.0 // indirect
	gopkg.in/go-jose/go-jose.v2 v2.6.3 // indirect
)
