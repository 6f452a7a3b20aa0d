// Presets of social networks and messengers.
import { createHmac } from 'node:crypto';
import { email, readClaims, type SocialPreset, sameNames, texts, valueAt } from './preset.ts';

const FACEBOOK_FIELDS = 'id,name,first_name,middle_name,last_name,email,picture.type(large)';

export const facebook: SocialPreset = {
  displayName: 'Facebook',
  authorization: 'https://www.facebook.com/v25.0/dialog/oauth',
  token: 'https://graph.facebook.com/v25.0/oauth/access_token',
  userInfo: 'https://graph.facebook.com/v25.0/me',
  required: ['public_profile'],
  scope: ['email'],
  scopes: {
    ...sameNames('email public_profile user_age_range user_birthday user_events user_friends user_gender'),
    ...sameNames('user_hometown user_likes user_link user_location user_photos user_posts user_videos'),
    ...sameNames('user_managed_groups user_status user_tagged_places groups_access_member_info'),
    ...sameNames('ads_management ads_read business_management leads_retrieval read_insights'),
    ...sameNames('pages_manage_cta pages_manage_instant_articles pages_messaging pages_show_list'),
    ...sameNames('publish_to_groups publish_video read_audience_network_insights whitelisted_offline_access'),
  },
  // With this proof, a stolen token cannot be used without the client secret (Facebook: "Secure Graph API calls").
  profileRequest: ({ accessToken, clientSecret }) => ({
    query: {
      fields: FACEBOOK_FIELDS,
      appsecret_proof: createHmac('sha256', clientSecret).update(accessToken).digest('hex'),
    },
  }),
  read: ({ user }) => {
    const { id, name, first_name: given_name, middle_name, last_name: family_name } = user;
    const picture = valueAt(user, 'picture', 'data', 'url');
    return {
      id,
      profile: {
        ...texts({ name, given_name, middle_name, family_name, picture }),
        ...email(user.email, false),
      },
    };
  },
};

export const linkedin: SocialPreset = {
  displayName: 'LinkedIn',
  authorization: 'https://www.linkedin.com/oauth/v2/authorization',
  token: 'https://www.linkedin.com/oauth/v2/accessToken',
  userInfo: 'https://api.linkedin.com/v2/userinfo',
  required: ['openid', 'profile'],
  scope: ['email'],
  scopes: { email: 'email', profile: 'profile', basic_profile: 'profile' },
  read: readClaims,
};

export const twitter: SocialPreset = {
  displayName: 'X',
  authorization: 'https://x.com/i/oauth2/authorize',
  token: 'https://api.x.com/2/oauth2/token',
  userInfo: 'https://api.x.com/2/users/me',
  required: ['users.read', 'tweet.read'],
  scopes: { email: 'users.email', offline_access: 'offline.access' },
  basic: true,
  pkce: true,
  profileRequest: ({ scopes }) => ({
    query: {
      'user.fields': `id,name,username,profile_image_url${scopes.includes('users.email') ? ',confirmed_email' : ''}`,
    },
  }),
  read: ({ user: { data } }) => ({
    id: valueAt(data, 'id'),
    profile: {
      ...texts({
        name: valueAt(data, 'name'),
        nickname: valueAt(data, 'username'),
        picture: valueAt(data, 'profile_image_url'),
      }),
      // X returns only a confirmed address.
      ...email(valueAt(data, 'confirmed_email'), true),
    },
  }),
};

export const discord: SocialPreset = {
  displayName: 'Discord',
  authorization: 'https://discord.com/oauth2/authorize',
  token: 'https://discord.com/api/oauth2/token',
  userInfo: 'https://discord.com/api/users/@me',
  required: ['identify'],
  scope: ['email'],
  scopes: { email: 'email', profile: 'identify', ...sameNames('guilds connections') },
  pkce: true,
  read: ({ user: { id, username, global_name, avatar, email: address, verified, locale } }) => ({
    id,
    profile: {
      ...texts({
        name: global_name ?? username,
        nickname: username,
        picture: typeof avatar === 'string' && `https://cdn.discordapp.com/avatars/${id}/${avatar}.png`,
        locale,
      }),
      ...email(address, verified),
    },
  }),
};

export const slack: SocialPreset = {
  displayName: 'Slack',
  authorization: 'https://slack.com/openid/connect/authorize',
  token: 'https://slack.com/api/openid.connect.token',
  userInfo: 'https://slack.com/api/openid.connect.userInfo',
  required: ['openid'],
  scope: ['profile', 'email'],
  scopes: { email: 'email', profile: 'profile' },
  read: (answers) => {
    // A user id is unique only within its workspace.
    const team = answers.user['https://slack.com/team_id'];
    const { id: user, profile } = readClaims(answers);
    const isKnown = typeof team === 'string' && team !== '' && typeof user === 'string' && user !== '';
    return { id: isKnown ? `${team}-${user}` : undefined, profile };
  },
};

export const line: SocialPreset = {
  displayName: 'LINE',
  authorization: 'https://access.line.me/oauth2/v2.1/authorize',
  token: 'https://api.line.me/oauth2/v2.1/token',
  userInfo: 'https://api.line.me/oauth2/v2.1/userinfo',
  required: ['openid', 'profile'],
  scopes: { email: 'email', profile: 'profile' },
  pkce: true,
  read: (answers) => {
    const { user, idToken } = answers;
    const { id, profile } = readClaims(answers);
    // Only the ID token has the address; LINE does not say whether it is verified.
    const address = idToken.sub === user.sub ? email(idToken.email, false) : {};
    return { id, profile: { ...profile, ...address } };
  },
};

export const yahoo: SocialPreset = {
  displayName: 'Yahoo',
  authorization: 'https://api.login.yahoo.com/oauth2/request_auth',
  token: 'https://api.login.yahoo.com/oauth2/get_token',
  userInfo: 'https://api.login.yahoo.com/openid/v1/userinfo',
  required: ['openid'],
  scope: ['profile', 'email'],
  scopes: { email: 'email', profile: 'profile' },
  basic: true,
  read: readClaims,
};
