// The strategies of OpenID providers, each as data.
import { oidcOptionsSchema } from '../../records/openid.ts';
import type { RedirectStrategy } from '../redirect.ts';
import { openIdStrategy } from './core.ts';

const oidc = openIdStrategy({
  name: 'oidc',
  isSocial: false,
  idsWithin: 'connection',
  parse: (options) => oidcOptionsSchema.parse(options),
  type: 'front_channel',
  scope: 'openid profile email',
  discovery: () => undefined,
});

/** All of them. */
export const openIdStrategies: readonly RedirectStrategy[] = [oidc];
