// The requests that the engine answers, each through our endpoint before it.
import { oauthShape } from '../http/errors.ts';
import type { Route } from '../http/routes.ts';
import type { AuthorizationEndpoint } from './authorize.ts';
import type { EnterEngine } from './entrance.ts';
import type { TokenEndpoint } from './token-endpoint.ts';

export interface EngineRoutesDependencies {
  enter: EnterEngine;
  authorization: AuthorizationEndpoint;
  tokens: TokenEndpoint;
}

/** The engine's routes: authorization, tokens, revocation, discovery. */
export function engineRoutes({ enter, authorization, tokens }: EngineRoutesDependencies): Route[] {
  const authorize = { limit: 'authorize', cors: 'none', errors: 'page' } as const;
  const called = { methods: ['POST'], cors: 'applications', errors: oauthShape } as const;
  const discovery = {
    methods: ['GET', 'HEAD'],
    limit: 'discovery',
    cors: 'any',
    errors: oauthShape,
    handle: enter,
  } as const;
  return [
    { ...authorize, methods: ['GET', 'POST'], path: '/authorize', handle: authorization.request },
    { ...authorize, methods: ['GET'], path: '/authorize/:uid', handle: authorization.resume },
    { ...called, path: '/oauth/token', limit: 'token', handle: (ctx) => tokens.token(ctx) },
    { ...called, path: '/oauth/revoke', limit: 'revoke', handle: (ctx) => tokens.revoke(ctx) },
    { ...discovery, path: '/.well-known/openid-configuration' },
    { ...discovery, path: '/.well-known/oauth-authorization-server' },
  ];
}
