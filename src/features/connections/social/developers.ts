// Presets of providers for source code and development tools.
import { email, list, readClaims, type SocialPreset, texts, valueAt } from './preset.ts';

/** GitHub. For GitHub Enterprise Server, the connection's options have the endpoints. */
export const github: SocialPreset = {
  displayName: 'GitHub',
  authorization: 'https://github.com/login/oauth/authorize',
  token: 'https://github.com/login/oauth/access_token',
  userInfo: 'https://api.github.com/user',
  scope: ['user:email'],
  scopes: {
    email: 'user:email',
    read_user: 'read:user',
    follow: 'user:follow',
    ...Object.fromEntries(
      ['public_repo', 'repo', 'repo_deployment', 'repo_status', 'delete_repo', 'notifications', 'gist'].map(
        (name) => [name, name],
      ),
    ),
    ...Object.fromEntries(
      ['org', 'public_key', 'repo_hook'].flatMap((resource) =>
        ['read', 'write', 'admin'].map((access) => [`${access}_${resource}`, `${access}:${resource}`]),
      ),
    ),
  },
  pkce: true,
  further: { emails: '/emails' },
  read: ({ user, further: { emails } }) => {
    const primary = list(emails).find((one) => valueAt(one, 'primary') === true);
    // The address of the profile is one that the user chose to show; GitHub does not say whether it is verified.
    const address =
      primary === undefined
        ? email(user.email, false)
        : email(valueAt(primary, 'email'), valueAt(primary, 'verified'));
    const { name, login: nickname, avatar_url: picture, html_url: profile, blog: website } = user;
    return { id: user.id, profile: { ...texts({ name, nickname, picture, profile, website }), ...address } };
  },
};

/** GitLab. For a self-managed GitLab, the connection's options have the endpoints. */
export const gitlab: SocialPreset = {
  displayName: 'GitLab',
  authorization: 'https://gitlab.com/oauth/authorize',
  token: 'https://gitlab.com/oauth/token',
  userInfo: 'https://gitlab.com/oauth/userinfo',
  required: ['openid'],
  scope: ['profile', 'email'],
  scopes: { profile: 'profile', email: 'email', read_user: 'read_user', read_api: 'read_api', api: 'api' },
  pkce: true,
  read: readClaims,
};

export const bitbucket: SocialPreset = {
  displayName: 'Bitbucket',
  authorization: 'https://bitbucket.org/site/oauth2/authorize',
  token: 'https://bitbucket.org/site/oauth2/access_token',
  userInfo: 'https://api.bitbucket.org/2.0/user',
  required: ['account'],
  scope: ['email'],
  scopes: { profile: 'account', email: 'email' },
  basic: true,
  further: { emails: '/emails' },
  read: ({ user, further: { emails } }) => {
    const primary = list(valueAt(emails, 'values')).find((one) => valueAt(one, 'is_primary') === true);
    const { display_name: name, nickname, username } = user;
    const picture = valueAt(user, 'links', 'avatar', 'href');
    return {
      id: user.uuid,
      profile: {
        ...texts({ name, nickname: nickname ?? username, picture }),
        ...email(valueAt(primary, 'email'), valueAt(primary, 'is_confirmed')),
      },
    };
  },
};

export const digitalocean: SocialPreset = {
  displayName: 'DigitalOcean',
  authorization: 'https://cloud.digitalocean.com/v1/oauth/authorize',
  token: 'https://cloud.digitalocean.com/v1/oauth/token',
  userInfo: 'https://api.digitalocean.com/v2/account',
  scope: ['read'],
  read: ({ user: { account } }) => ({
    id: valueAt(account, 'uuid'),
    profile: {
      ...texts({ name: valueAt(account, 'name') }),
      ...email(valueAt(account, 'email'), valueAt(account, 'email_verified')),
    },
  }),
};

export const figma: SocialPreset = {
  displayName: 'Figma',
  authorization: 'https://www.figma.com/oauth',
  token: 'https://api.figma.com/v1/oauth/token',
  refresh: 'https://api.figma.com/v1/oauth/refresh',
  userInfo: 'https://api.figma.com/v1/me',
  scope: ['current_user:read'],
  basic: true,
  pkce: true,
  read: ({ user: { id, handle, img_url: picture, email: address } }) => ({
    id,
    profile: { ...texts({ name: handle, nickname: handle, picture }), ...email(address, false) },
  }),
};
