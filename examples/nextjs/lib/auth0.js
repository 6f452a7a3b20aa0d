import { Auth0Client } from '@auth0/nextjs-auth0/server';

const { AUTH0_DOMAIN, AUTH0_AUDIENCE } = process.env;

// The SDK reads the other settings from .env.
export const auth0 = new Auth0Client({
  domain: `https://${AUTH0_DOMAIN}`,
  // The SDK accepts a domain on this machine, or one with a port, only with this option. It is for development only.
  allowInsecureRequests: true,
  authorizationParameters: {
    audience: AUTH0_AUDIENCE,
    scope: 'openid profile email read:messages',
  },
});
