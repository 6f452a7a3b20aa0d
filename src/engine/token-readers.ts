// Wires the readers of our tokens and of client credentials. Each uses the tenant's present keys.
import type { Context } from 'koa';
import type { Users } from '../users/users.ts';
import type { ReadBasic } from './basic-credentials.ts';
import { authenticateClient } from './client-authentication.ts';
import { introspection } from './introspection.ts';
import type { Organizations } from './organizations.ts';
import { publishedKeys } from './published-keys.ts';
import type { SecondFactor } from './second-factor.ts';
import { idTokenReaders } from './sent-id-tokens.ts';
import type { Sessions } from './sessions.ts';
import { type UserinfoDependencies, userinfo } from './userinfo.ts';

interface ReaderDependencies extends Omit<UserinfoDependencies, 'keys'> {
  users: Users;
  readBasic: ReadBasic;
  organizations: Organizations;
  sessions: Pick<Sessions, 'loginOf' | 'isOpen'>;
  secondFactor: Pick<SecondFactor, 'isSufficient'>;
}

/** Makes the readers of one provider. */
export function tokenReaders(deps: ReaderDependencies) {
  const { provider, config } = deps;
  const { issuer } = provider;
  const keys = publishedKeys(config);
  const ofClient = (ctx: Context) => authenticateClient(provider, deps.readBasic, ctx);
  return {
    keys,
    userinfo: userinfo({ ...deps, keys }),
    introspect: introspection({ ...deps, authenticateClient: ofClient, issuer, keys }),
    ...idTokenReaders({ ...deps, issuer, keys }),
    authenticateClient: ofClient,
  };
}
