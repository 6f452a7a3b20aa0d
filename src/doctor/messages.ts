// Mail and SMS: whether the mail server takes the credentials, and whether those of the SMS provider are of its form.
import { askMailServer } from '../delivery/mail.ts';
import { smtpSettings } from '../delivery/transports.ts';
import type { Settings } from '../settings.ts';
import { type Finding, findings, messageOf } from './finding.ts';

const mail = findings('SMTP');
const sms = findings('Twilio');

/** Connects and logs in, and sends nothing. */
export async function checkMail({ mail: settings, production }: Settings): Promise<Finding> {
  if (settings === undefined) {
    const text =
      'SMTP_URL is not set: mail goes through what the tenant names, otherwise to files in the data directory';
    return production ? mail.warning(text) : mail.ok(text);
  }
  const server = smtpSettings(new URL(settings.smtpUrl));
  const where = `${server.host}:${server.port}`;
  try {
    await askMailServer(server);
    return mail.ok(`${where} takes connections${server.user === undefined ? '' : ' and the credentials'}`);
  } catch (thrown) {
    return mail.fault(`${where}: ${messageOf(thrown)}`);
  }
}

/** The form alone: Twilio is not asked. */
export function checkSms({ sms: settings, production }: Settings): Finding {
  if (settings === undefined) {
    const text = 'TWILIO_ACCOUNT_SID is not set: text messages are files in the data directory';
    return production ? sms.warning(text) : sms.ok(text);
  }
  const { accountSid, authToken, from, messagingServiceSid } = settings;
  if (!/^AC[0-9a-f]{32}$/i.test(accountSid))
    return sms.fault('TWILIO_ACCOUNT_SID is not AC and 32 hexadecimal digits');
  if (!/^[0-9a-f]{32}$/i.test(authToken)) return sms.fault('TWILIO_AUTH_TOKEN is not 32 hexadecimal digits');
  if (messagingServiceSid !== undefined && !/^MG[0-9a-f]{32}$/i.test(messagingServiceSid))
    return sms.fault('TWILIO_MESSAGING_SERVICE_SID is not MG and 32 hexadecimal digits');
  if (from !== undefined && !/^(\+\d{6,15}|\d{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/.test(from))
    return sms.fault('TWILIO_FROM is no phone number (+…), short code or sender name');
  return sms.ok('the settings have the form of Twilio; whether it takes them is seen when a message is sent');
}
