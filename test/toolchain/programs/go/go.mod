module gatehouse.test/toolchain

go 1.24

require github.com/auth0/go-auth0 v1.47.0
