#!/bin/sh
# Java trusts the certificate authority of Gatehouse on this machine, then the application starts.
set -e
rm -f data/tls/trust.p12
keytool -importcert -noprompt -alias gatehouse -file data/tls/ca.pem -keystore data/tls/trust.p12 \
  -storetype PKCS12 -storepass changeit
exec mvn -q spring-boot:run
