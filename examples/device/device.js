import * as oidc from 'openid-client';

const { AUTH0_DOMAIN, AUTH0_CLIENT_ID } = process.env;

const config = await oidc.discovery(
  new URL(`https://${AUTH0_DOMAIN}/`),
  AUTH0_CLIENT_ID,
  undefined,
  oidc.None(),
);
const codes = await oidc.initiateDeviceAuthorization(config, { scope: 'openid profile email' });
console.log(`Open ${codes.verification_uri} and enter the code ${codes.user_code}`);
console.log(`or open ${codes.verification_uri_complete}`);

// Asks at the interval that Gatehouse named, until the user has decided or the code has expired.
try {
  const tokens = await oidc.pollDeviceAuthorizationGrant(config, codes);
  const user = await oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
  console.log(`You are logged in as ${user.email}.`);
} catch (error) {
  console.error(`You are not logged in: ${error.error_description ?? error.message}`);
  process.exitCode = 1;
}
