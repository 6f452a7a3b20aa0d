// The presets, by strategy. A new one is an entry here and a name in `SOCIAL_STRATEGIES` (src/records/connections/social.ts).
// docs/understand/decisions/connections.md#an-address-from-a-provider-is-verified-only-if-the-provider-says-so
import type { SocialStrategyName } from '../../../records/connections/social.ts';
import { bitbucket, digitalocean, figma, github, gitlab } from './developers.ts';
import { discord, facebook, line, linkedin, slack, twitter, yahoo } from './networks.ts';
import type { SocialPreset } from './preset.ts';
import * as services from './services.ts';

export const presets: Readonly<Record<SocialStrategyName, SocialPreset>> = {
  amazon: services.amazon,
  bitbucket,
  box: services.box,
  digitalocean,
  discord,
  dropbox: services.dropbox,
  facebook,
  figma,
  fitbit: services.fitbit,
  github,
  gitlab,
  line,
  linkedin,
  paypal: services.paypal,
  'paypal-sandbox': services.paypalSandbox,
  salesforce: services.salesforce,
  'salesforce-sandbox': services.salesforceSandbox,
  slack,
  spotify: services.spotify,
  twitch: services.twitch,
  twitter,
  windowslive: services.windowslive,
  wordpress: services.wordpress,
  yahoo,
};
