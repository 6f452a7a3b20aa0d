// The initial code of a new action, by trigger.
import { TRIGGER_ENTRIES, type Trigger } from '../../../records/tenant/actions.ts';

/** The triggers whose actions run on this server, in the order in which the console lists them. */
export const SUPPORTED_TRIGGERS = Object.keys(TRIGGER_ENTRIES) as Trigger[];

const BODIES: Readonly<Record<Trigger, string>> = {
  'post-login': `  // A claim that applications read. Its name is an address, so that it is nobody else's.
  api.idToken.setCustomClaim('https://example.com/plan', event.user.app_metadata?.plan ?? 'free');
  // if (event.stats.logins_count > 1 && !event.user.email_verified) api.access.deny('Please verify your e-mail address.');`,
  'credentials-exchange': `  // if (event.client.metadata?.tier !== 'gold') return api.access.deny('access_denied', 'Not for this application.');
  api.accessToken.setCustomClaim('https://example.com/tier', event.client.metadata?.tier ?? 'none');`,
  'pre-user-registration': `  // const domain = event.user.email?.split('@')[1];
  // if (domain !== 'example.com') return api.access.deny('domain', 'Please use the address of your company.');
  api.user.setUserMetadata('registered_by', event.client?.name ?? 'unknown');`,
  'post-user-registration': `  // Runs after the answer: nobody waits for it.
  console.log('registered', event.user.user_id);`,
  'post-change-password': `  // Runs after the answer: nobody waits for it.
  console.log('password changed', event.user.user_id);`,
  'send-phone-message': `  // const answer = await fetch('https://sms.example.com/send', {
  //   method: 'POST',
  //   headers: { authorization: \`Bearer \${event.secrets.SMS_KEY}\`, 'content-type': 'application/json' },
  //   body: JSON.stringify({ to: event.message_options.recipient, text: event.message_options.text }),
  // });
  // if (!answer.ok) throw new Error(\`the provider answered \${answer.status}\`);
  throw new Error('This action sends nothing yet.');`,
  'custom-phone-provider': `  // const { recipient, as_text } = event.notification;
  // const answer = await fetch('https://sms.example.com/send', {
  //   method: 'POST',
  //   headers: { authorization: \`Bearer \${event.secrets.SMS_KEY}\`, 'content-type': 'application/json' },
  //   body: JSON.stringify({ to: recipient, text: as_text }),
  // });
  // if (answer.status >= 500) return api.notification.retry(\`the provider answered \${answer.status}\`);
  api.notification.drop('This action sends nothing yet.');`,
  'custom-email-provider': `  // const { from, to, subject, html, text } = event.notification;
  // const answer = await fetch('https://mail.example.com/send', {
  //   method: 'POST',
  //   headers: { authorization: \`Bearer \${event.secrets.MAIL_KEY}\`, 'content-type': 'application/json' },
  //   body: JSON.stringify({ from, to, subject, html, text }),
  // });
  // if (answer.status >= 500) return api.notification.retry(\`the provider answered \${answer.status}\`);
  api.notification.drop('This action sends nothing yet.');`,
  'custom-token-exchange': `  // Verify event.transaction.subject_token before anybody is set: whoever is set is logged in.
  api.access.rejectInvalidSubjectToken('This action knows no tokens yet.');`,
  'password-reset-post-challenge': `  // if (event.user.blocked) return api.access.deny('blocked');
  console.log('password reset', event.user.user_id);`,
};

const WITHOUT_API: Readonly<Partial<Record<Trigger, boolean>>> = {
  'post-user-registration': true,
  'post-change-password': true,
  'send-phone-message': true,
};

export function templateOf(trigger: Trigger): string {
  const parameters = WITHOUT_API[trigger] === true ? 'event' : 'event, api';
  return `exports.${TRIGGER_ENTRIES[trigger]} = async (${parameters}) => {\n${BODIES[trigger]}\n};\n`;
}

const USER = {
  user_id: 'auth0|example',
  email: 'ada@example.test',
  email_verified: true,
  name: 'Ada Lovelace',
  app_metadata: {},
  user_metadata: {},
};
const CLIENT = { client_id: 'example', name: 'An application', metadata: {} };
const REQUEST = { ip: '203.0.113.7', user_agent: 'Example', method: 'POST', query: {}, body: {} };

/** Returns an example event for trying an action of a trigger, with the members that most actions read. */
export function exampleEvent(trigger: Trigger): object {
  if (trigger === 'credentials-exchange') {
    return {
      client: CLIENT,
      request: REQUEST,
      accessToken: { scope: [] },
      resource_server: { identifier: 'https://api.example.test/' },
    };
  }
  if (trigger === 'send-phone-message') {
    const message_options = { recipient: '+442079460000', text: 'Your code is 123456', message_type: 'sms' };
    return { user: USER, client: CLIENT, request: REQUEST, message_options };
  }
  if (trigger === 'custom-phone-provider') {
    const notification = { recipient: '+442079460000', as_text: 'Your code is 123456', code: '123456' };
    const how = { delivery_method: 'text', message_type: 'otp_verify' };
    return { user: USER, client: CLIENT, request: REQUEST, notification: { ...notification, ...how } };
  }
  if (trigger === 'custom-email-provider') {
    const message = { from: 'no-reply@example.test', to: USER.email, message_type: 'verify_email' };
    const text = {
      subject: 'Verify your e-mail address',
      text: 'Open the link',
      html: '<p>Open the link</p>',
    };
    return { user: USER, client: CLIENT, request: REQUEST, notification: { ...message, ...text } };
  }
  if (trigger === 'custom-token-exchange') {
    const transaction = {
      subject_token: 'example',
      subject_token_type: 'urn:example:token',
      requested_scopes: [],
    };
    return { client: CLIENT, request: REQUEST, transaction };
  }
  return {
    user: USER,
    client: CLIENT,
    connection: { name: 'Username-Password-Authentication', strategy: 'auth0' },
    request: REQUEST,
    stats: { logins_count: 1 },
    authentication: { methods: [{ name: 'pwd', timestamp: '2026-01-01T00:00:00.000Z' }] },
    transaction: { requested_scopes: ['openid'] },
  };
}
