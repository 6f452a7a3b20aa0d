// The strategies of OpenID providers, as presets of the common implementation (core.ts).

import { canonicalDomain } from '../../../records/base/email.ts';
import {
  appleOptionsSchema,
  googleAppsOptionsSchema,
  googleOptionsSchema,
  oidcOptionsSchema,
  oktaOptionsSchema,
} from '../../../records/connections/openid.ts';
import { type RedirectStrategy, upstreamFault } from '../redirect.ts';
import { appleName, appleSecret } from './apple.ts';
import { openIdStrategy } from './core.ts';
import type { Claims } from './id-token.ts';
import { adfs, waad } from './microsoft.ts';
import type { Preset } from './preset.ts';

// The scopes of Google's APIs by the options of a connection that request them. Options for discontinued services (Coordinate,
// Latitude, Orkut …) are left out, because Google rejects the whole request if it has one of their scopes.

const API = 'https://www.googleapis.com/auth/';

/** Options whose scope has the same name, with dots in place of underscores. */
const DOTTED =
  'analytics blogger calendar calendar_addons_execute calendar_events calendar_events_readonly calendar_settings_readonly ' +
  'contacts contacts_other_readonly contacts_readonly directory_readonly drive drive_activity drive_activity_readonly ' +
  'drive_appdata drive_apps_readonly drive_file drive_metadata drive_metadata_readonly drive_photos_readonly ' +
  'drive_readonly drive_scripts gmail_compose gmail_insert gmail_labels gmail_metadata gmail_modify gmail_readonly ' +
  'gmail_send gmail_settings_basic gmail_settings_sharing tasks tasks_readonly youtube youtube_readonly youtube_upload ' +
  'youtubepartner';

/** Option to scope. */
const GOOGLE_SCOPES: Readonly<Record<string, string>> = {
  email: 'email',
  profile: 'profile',
  ...Object.fromEntries(DOTTED.split(' ').map((name) => [name, `${API}${name.replaceAll('_', '.')}`])),
  adsense_management: `${API}adsense`,
  chrome_web_store: `${API}chromewebstore.readonly`,
  contacts_new: `${API}contacts`,
  content_api_for_shopping: `${API}content`,
  gmail: 'https://mail.google.com/',
  gmail_new: 'https://mail.google.com/',
  google_books: `${API}books`,
  google_cloud_storage: `${API}devstorage.read_write`,
  google_drive: `${API}drive`,
  google_drive_files: `${API}drive.file`,
  webmaster_tools: `${API}webmasters`,
  youtube_channelmemberships_creator: `${API}youtube.channel-memberships.creator`,
  youtube_new: `${API}youtube`,
};

const SCOPE = 'openid profile email';

const oidc = openIdStrategy({
  name: 'oidc',
  isSocial: false,
  idsWithin: 'connection',
  parse: (options) => oidcOptionsSchema.parse(options),
  type: 'front_channel',
  scope: SCOPE,
  discovery: () => undefined,
});

const okta = openIdStrategy({
  name: 'okta',
  isSocial: false,
  idsWithin: 'connection',
  parse: (options) => oktaOptionsSchema.parse(options),
  type: 'back_channel',
  scope: SCOPE,
  discovery: ({ domain }) => (domain ? `https://${domain}` : undefined),
});

const GOOGLE = 'https://accounts.google.com';

/** Google's ID tokens have an issuer with or without `https://`. */
const isGoogleIssuer: Preset<never>['isIssuer'] = (issuer, _claims, _options, metadata) =>
  issuer === metadata.issuer || (metadata.issuer === GOOGLE && `https://${issuer}` === GOOGLE);

/** Google accounts. ID tokens of native apps are verified by this preset, too. */
export const google = {
  name: 'google-oauth2',
  label: 'Google',
  isSocial: true,
  idsWithin: 'strategy',
  parse: (options: unknown) => googleOptionsSchema.parse(options),
  type: 'back_channel',
  scope: SCOPE,
  scopes: GOOGLE_SCOPES,
  discovery: () => GOOGLE,
  isIssuer: isGoogleIssuer,
  parameters: ({ offline_access }): Record<string, string> =>
    offline_access === true ? { access_type: 'offline' } : {},
} satisfies Preset<ReturnType<typeof googleOptionsSchema.parse>>;

type GoogleAppsOptions = ReturnType<typeof googleAppsOptionsSchema.parse>;

/** Returns the domains whose accounts may log in with a Google Workspace connection. */
function domainsOf({ domain, tenant_domain, domain_aliases = [] }: GoogleAppsOptions): string[] {
  return [domain, tenant_domain, ...domain_aliases].flatMap((one) =>
    one ? [canonicalDomain(one) ?? one] : [],
  );
}

const googleApps = openIdStrategy<GoogleAppsOptions>({
  name: 'google-apps',
  isSocial: false,
  idsWithin: 'strategy',
  parse: (options) => googleAppsOptionsSchema.parse(options),
  type: 'back_channel',
  scope: SCOPE,
  // The scope email is always requested, because users are identified by their address.
  scopes: { profile: 'profile' },
  discovery: () => GOOGLE,
  isIssuer: isGoogleIssuer,
  parameters: (options): Record<string, string> => {
    const [hd] = domainsOf(options);
    return hd === undefined ? {} : { hd };
  },
  // The parameter hd only selects what Google's page shows, and the user can remove it; so the claim is checked.
  admit: ({ hd }, options) => {
    if (typeof hd === 'string' && domainsOf(options).includes(canonicalDomain(hd) ?? hd)) return;
    throw upstreamFault('access_denied', "The account is not of the connection's domain.");
  },
  idOf: (claims, { map_user_id_to_id }) => (map_user_id_to_id ? claims.sub : verifiedEmail(claims)),
  // An address may be given to another account of the domain.
  // docs/understand/decisions/connections.md#entras-users-are-identified-by-sub-unless-userid_attribute-is-oid
  stableOf: (claims, { map_user_id_to_id }) => {
    const name = map_user_id_to_id ? claims.sub : verifiedEmail(claims);
    return {
      id: claims.sub,
      name,
      description: `the Google account ${claims.sub} (${name})`,
      // Every account is recorded at its first login.
      isSame: () => false,
    };
  },
});

function verifiedEmail({ email, email_verified }: Claims): string {
  if (typeof email === 'string' && email !== '' && email_verified === true) return email.toLowerCase();
  throw upstreamFault('access_denied', 'The account has no verified e-mail address.');
}

/** Apple. Codes of native apps are exchanged by this preset, too. */
export const apple = {
  name: 'apple',
  label: 'Apple',
  isSocial: true,
  idsWithin: 'strategy',
  parse: (options: unknown) => appleOptionsSchema.parse(options),
  type: 'back_channel',
  scope: 'name email',
  scopes: { name: 'name', email: 'email' },
  discovery: () => 'https://appleid.apple.com',
  // Apple requires form_post when the scopes include the name or address.
  responseMode: 'form_post',
  secretOf: appleSecret,
  profile: (profile, { parameters }) => ({ ...profile, ...appleName(parameters.user) }),
} satisfies Preset<ReturnType<typeof appleOptionsSchema.parse>>;

export const openIdStrategies: readonly RedirectStrategy[] = [
  oidc,
  okta,
  openIdStrategy(waad),
  openIdStrategy(adfs),
  openIdStrategy(google),
  googleApps,
  openIdStrategy(apple),
];
