import { auth0 } from './lib/auth0.js';

// Serves the SDK's routes, such as /auth/login, /auth/callback and /auth/logout, and renews the session.
export function proxy(request) {
  return auth0.middleware(request);
}

export const config = { matcher: ['/((?!_next/static|_next/image|favicon.ico).*)'] };
