// Wires the readers of our tokens and of client credentials. Each uses the tenant's present keys.
import type { Context } from 'koa';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/organizations.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import type { ReadBasic } from '../base/basic-credentials.ts';
import { publishedKeys } from '../base/published-keys.ts';
import { authenticateClient } from '../client/client-authentication.ts';
import type { Sessions } from '../session/sessions.ts';
import { introspection } from './introspection.ts';
import { idTokenReaders } from './sent-id-tokens.ts';
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
