// The client of @auth0/auth0-hono for a Gatehouse whose address has a port. The SDK's own accepts only a host name as
// `AUTH0_DOMAIN`; the package that both are made with accepts a port, too.
import { CookieTransactionStore, ServerClient, StatelessStateStore } from '@auth0/auth0-server-js';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';

const { BASE_URL, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, AUTH0_SESSION_ENCRYPTION_KEY } =
  process.env;

const cookies = {
  setCookie: (name, value, options, c) => setCookie(c, name, value, options),
  getCookie: (name, c) => getCookie(c, name),
  getCookies: (c) => getCookie(c),
  deleteCookie: (name, c) => deleteCookie(c, name),
};

/** Returns a middleware that takes the place of the client which `auth()` has set. */
export function clientWithPort(authorizationParams) {
  const secret = AUTH0_SESSION_ENCRYPTION_KEY;
  const client = new ServerClient({
    domain: AUTH0_DOMAIN,
    clientId: AUTH0_CLIENT_ID,
    clientSecret: AUTH0_CLIENT_SECRET,
    authorizationParams: { ...authorizationParams, redirect_uri: `${BASE_URL}/auth/callback` },
    transactionStore: new CookieTransactionStore({ secret }, cookies),
    stateStore: new StatelessStateStore({ secret }, cookies),
  });
  return (c, next) => {
    c.set('auth0Client', client);
    return next();
  };
}
