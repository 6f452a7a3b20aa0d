// Presets of shops, media services, file storage and business software.
import { email, list, readClaims, type SocialPreset, sameNames, texts, valueAt } from './preset.ts';

/** Microsoft accounts, both personal ones and those of organizations. */
export const windowslive: SocialPreset = {
  displayName: 'Microsoft',
  authorization: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
  token: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
  userInfo: 'https://graph.microsoft.com/v1.0/me',
  required: ['User.Read'],
  scopes: {
    offline_access: 'offline_access',
    graph_user: 'User.Read',
    graph_user_update: 'User.ReadWrite',
    graph_user_activity: 'UserActivity.ReadWrite.CreatedByApp',
    graph_calendars: 'Calendars.Read',
    graph_calendars_update: 'Calendars.ReadWrite',
    graph_contacts: 'Contacts.Read',
    graph_contacts_update: 'Contacts.ReadWrite',
    graph_device: 'Device.Read',
    graph_device_command: 'Device.Command',
    graph_emails: 'Mail.Read',
    graph_emails_update: 'Mail.ReadWrite',
    graph_files: 'Files.Read',
    graph_files_all: 'Files.Read.All',
    graph_files_all_update: 'Files.ReadWrite.All',
    graph_files_update: 'Files.ReadWrite',
    graph_notes: 'Notes.Read',
    graph_notes_create: 'Notes.Create',
    graph_notes_update: 'Notes.ReadWrite',
    graph_tasks: 'Tasks.Read',
    graph_tasks_update: 'Tasks.ReadWrite',
  },
  pkce: true,
  read: ({
    user: { id, displayName: name, givenName, surname, mail, userPrincipalName, preferredLanguage },
  }) => ({
    id,
    profile: {
      ...texts({ name, given_name: givenName, family_name: surname, locale: preferredLanguage }),
      // Unverified, because an organization's administrator can set any address.
      ...email(mail ?? addressIn(userPrincipalName), false),
    },
  }),
};

/** Returns a sign-in name that is an e-mail address. That of a guest (`#EXT#`) only looks like one. */
function addressIn(name: unknown): string | undefined {
  return typeof name === 'string' && name.includes('@') && !name.includes('#EXT#') ? name : undefined;
}

const paypalAt = (site: string, api: string): SocialPreset => ({
  displayName: 'PayPal',
  authorization: `https://${site}/connect?flowEntry=static`,
  token: `https://${api}/v1/oauth2/token`,
  userInfo: `https://${api}/v1/identity/oauth2/userinfo`,
  required: ['openid'],
  scope: ['profile', 'email'],
  scopes: sameNames('email profile address phone'),
  basic: true,
  profileRequest: () => ({ query: { schema: 'paypalv1.1' } }),
  read: ({ user }) => {
    const { user_id, name, given_name, family_name, emails, locale } = user;
    const primary = list(emails).find((one) => valueAt(one, 'primary') === true);
    // According to PayPal's reference, the response may have the claims of OpenID Connect in place of this list.
    const address =
      primary === undefined
        ? email(user.email, user.email_verified)
        : email(valueAt(primary, 'value'), valueAt(primary, 'confirmed'));
    return {
      // A URL whose last segment is the id.
      id: typeof user_id === 'string' ? user_id.split('/').at(-1) : undefined,
      profile: { ...texts({ name, given_name, family_name, locale }), ...address },
    };
  },
});

export const paypal = paypalAt('www.paypal.com', 'api-m.paypal.com');
export const paypalSandbox = paypalAt('www.sandbox.paypal.com', 'api-m.sandbox.paypal.com');

export const amazon: SocialPreset = {
  displayName: 'Amazon',
  authorization: 'https://www.amazon.com/ap/oa',
  token: 'https://api.amazon.com/auth/o2/token',
  userInfo: 'https://api.amazon.com/user/profile',
  scope: ['profile'],
  scopes: { profile: 'profile', postal_code: 'postal_code' },
  pkce: true,
  read: ({ user: { user_id, name, email: address } }) => ({
    id: user_id,
    profile: { ...texts({ name }), ...email(address, false) },
  }),
};

export const spotify: SocialPreset = {
  displayName: 'Spotify',
  authorization: 'https://accounts.spotify.com/authorize',
  token: 'https://accounts.spotify.com/api/token',
  userInfo: 'https://api.spotify.com/v1/me',
  scope: ['user-read-email'],
  basic: true,
  pkce: true,
  // The address is unverified: "there is no proof that it actually belongs to the user" (Spotify's Web API reference).
  read: ({ user: { id, display_name: name, images, email: address } }) => ({
    id,
    profile: { ...texts({ name, picture: valueAt(images, 0, 'url') }), ...email(address, false) },
  }),
};

export const twitch: SocialPreset = {
  displayName: 'Twitch',
  authorization: 'https://id.twitch.tv/oauth2/authorize',
  token: 'https://id.twitch.tv/oauth2/token',
  userInfo: 'https://api.twitch.tv/helix/users',
  scope: ['user:read:email'],
  scopes: { email: 'user:read:email' },
  profileRequest: ({ clientId }) => ({ headers: { 'client-id': clientId } }),
  read: ({ user: { data } }) => {
    const name = valueAt(data, 0, 'display_name');
    const picture = valueAt(data, 0, 'profile_image_url');
    return {
      id: valueAt(data, 0, 'id'),
      profile: {
        ...texts({ name, nickname: valueAt(data, 0, 'login'), picture }),
        // The API returns only a verified address.
        ...email(valueAt(data, 0, 'email'), true),
      },
    };
  },
};

export const dropbox: SocialPreset = {
  displayName: 'Dropbox',
  authorization: 'https://www.dropbox.com/oauth2/authorize',
  token: 'https://api.dropboxapi.com/oauth2/token',
  userInfo: 'https://api.dropboxapi.com/2/users/get_current_account',
  scope: ['account_info.read'],
  pkce: true,
  profileRequest: () => ({ method: 'POST' }),
  read: ({
    user: { account_id, name, email: address, email_verified, profile_photo_url: picture, locale },
  }) => ({
    id: account_id,
    profile: {
      ...texts({ name: valueAt(name, 'display_name'), given_name: valueAt(name, 'given_name') }),
      ...texts({ family_name: valueAt(name, 'surname'), picture, locale }),
      ...email(address, email_verified),
    },
  }),
};

export const box: SocialPreset = {
  displayName: 'Box',
  authorization: 'https://account.box.com/api/oauth2/authorize',
  token: 'https://api.box.com/oauth2/token',
  userInfo: 'https://api.box.com/2.0/users/me',
  read: ({ user: { id, name, login, avatar_url: picture } }) => ({
    id,
    profile: { ...texts({ name, picture }), ...email(login, false) },
  }),
};

const salesforceAt = (host: string): SocialPreset => ({
  displayName: 'Salesforce',
  authorization: `https://${host}/services/oauth2/authorize`,
  token: `https://${host}/services/oauth2/token`,
  userInfo: `https://${host}/services/oauth2/userinfo`,
  required: ['openid'],
  scope: ['profile', 'email'],
  scopes: sameNames('email profile'),
  pkce: true,
  read: readClaims,
});

export const salesforce: SocialPreset = {
  ...salesforceAt('login.salesforce.com'),
  read: (answers) => ({ ...readClaims(answers), id: answers.user.user_id }),
};

export const salesforceSandbox: SocialPreset = {
  ...salesforceAt('test.salesforce.com'),
  // Sandboxes are copies of an organization, whose users have the same ids in every copy.
  read: (answers) => {
    const { organization_id: organization, user_id: user } = answers.user;
    const isKnown = typeof organization === 'string' && organization !== '' && typeof user === 'string';
    return { ...readClaims(answers), id: isKnown && user !== '' ? `${organization}-${user}` : undefined };
  },
};

export const wordpress: SocialPreset = {
  displayName: 'WordPress',
  authorization: 'https://public-api.wordpress.com/oauth2/authorize',
  token: 'https://public-api.wordpress.com/oauth2/token',
  userInfo: 'https://public-api.wordpress.com/rest/v1.1/me',
  scope: ['auth'],
  read: ({ user: { ID: id, display_name: name, username, email: address, email_verified, avatar_URL } }) => ({
    id,
    profile: {
      ...texts({ name, nickname: username, picture: avatar_URL }),
      ...email(address, email_verified),
    },
  }),
};

const HEALTH = 'https://www.googleapis.com/auth/googlehealth';

/**
 * Fitbit's own login ended in November 2026. Its users log in with Google, and the Google Health API returns the Fitbit user id
 * that they had before.
 */
export const fitbit: SocialPreset = {
  displayName: 'Fitbit',
  authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
  token: 'https://oauth2.googleapis.com/token',
  userInfo: 'https://health.googleapis.com/v4/users/me/identity',
  required: [`${HEALTH}.profile.readonly`],
  scopes: {
    profile: `${HEALTH}.profile.readonly`,
    activity: `${HEALTH}.activity_and_fitness.readonly`,
    heartrate: `${HEALTH}.health_metrics_and_measurements.readonly`,
    settings: `${HEALTH}.settings.readonly`,
    sleep: `${HEALTH}.sleep.readonly`,
    weight: `${HEALTH}.health_metrics_and_measurements.readonly`,
  },
  pkce: true,
  // No Fitbit id has an underscore, so a prefixed Google Health id never equals one.
  read: ({ user: { legacyUserId: older, healthUserId: id } }) => ({
    id:
      typeof older === 'string' && older !== ''
        ? older
        : typeof id === 'string' && id !== ''
          ? `health_${id}`
          : undefined,
    profile: {},
  }),
};
