// A server that sends messages through providers: doubles of a mail server and of Twilio's API.
import { startServer, type TestServer } from './server.ts';
import { startMailServer, type TestMailServer } from './smtp.ts';
import { startTwilio, type TestTwilio, TWILIO } from './twilio.ts';

export interface WithProviders {
  mail: TestMailServer;
  twilio: TestTwilio;
  server: TestServer;
  stop(): Promise<void>;
}

/** Starts the doubles, and a server that uses them. */
export async function startWithProviders(
  tenant: object,
  options: { maxWait?: number } = {},
): Promise<WithProviders> {
  const mail = await startMailServer();
  const twilio = await startTwilio();
  const server = await startServer({
    ...options,
    tenant,
    env: {
      SMTP_URL: mail.url,
      MAIL_FROM: 'Gatehouse <login@example.test>',
      TWILIO_ACCOUNT_SID: TWILIO.accountSid,
      TWILIO_AUTH_TOKEN: TWILIO.authToken,
      TWILIO_FROM: '+15005550006',
      TWILIO_API_URL: twilio.url,
    },
  });
  return {
    mail,
    twilio,
    server,
    stop: async () => {
      await server.stop();
      await mail.stop();
      await twilio.stop();
    },
  };
}
