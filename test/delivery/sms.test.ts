// SMS with Twilio's own client, against a stand-in for its Messages API.
import { expect } from 'chai';
import { checkSmsAccount, createSmsTransport } from '../../src/capabilities/delivery/sms.ts';
import type { OutgoingSms } from '../../src/capabilities/delivery/transport.ts';
import { createOutbound, LOOPBACK_RANGES, outboundRules } from '../../src/http/outbound/outbound.ts';
import { DeliveryError } from '../../src/records/base/message-transport.ts';
import { startTwilio, type TestTwilio, TWILIO } from '../support/twilio.ts';
import { PATIENCE } from '../support/wait-until.ts';

const outbound = createOutbound({ rules: outboundRules(LOOPBACK_RANGES) });
const MESSAGE: OutgoingSms = {
  channel: 'sms',
  to: '+16505551234',
  text: 'Your code is 123456. ✓',
  source: { kind: 'mfa_sms', notice: { to: '+16505551234' } },
};

describe('an SMS', () => {
  let twilio: TestTwilio;
  before(async () => {
    twilio = await startTwilio();
  });
  after(() => twilio.stop());
  afterEach(() => twilio.behave('accept'));

  const deliver = (message = MESSAGE, settings: object = { from: '+15005550006' }, timeout = PATIENCE) =>
    createSmsTransport({ ...TWILIO, apiUrl: twilio.url, ...settings }, outbound, timeout)
      .deliver(message, 'an-id')
      .then(
        () => undefined,
        (error: unknown) => error as DeliveryError,
      );

  it('goes out from a number', async () => {
    expect(await deliver()).to.equal(undefined);
    expect(twilio.messages.at(-1)).to.deep.equal({
      To: MESSAGE.to,
      Body: MESSAGE.text,
      From: '+15005550006',
    });
  });

  it('goes out through a messaging service', async () => {
    expect(await deliver(MESSAGE, { messagingServiceSid: 'MG1' })).to.equal(undefined);
    expect(twilio.messages.at(-1)).to.include({ MessagingServiceSid: 'MG1' }).and.not.have.property('From');
  });

  it('goes out from the number that the message names', async () => {
    expect(await deliver({ ...MESSAGE, from: 'Example' })).to.equal(undefined);
    expect(twilio.messages.at(-1)).to.include({ From: 'Example' });
  });

  for (const [what, status, code, expected] of [
    ['an invalid number', 400, 21211, 'invalid-number'],
    ['a number that takes no SMS', 400, 21614, 'invalid-number'],
    ['a number that has opted out', 400, 21610, 'invalid-number'],
    ['a sender that is not allowed', 400, 21606, 'rejected'],
    ['too many requests', 429, 20429, 'unavailable'],
    ['a fault of the provider', 503, 20503, 'unavailable'],
  ] as const) {
    it(`for ${what} is ${expected}`, async () => {
      twilio.behave({ status, code, message: `the provider's words for ${code}` });
      const error = await deliver();
      expect(error).to.be.instanceOf(DeliveryError);
      expect(error).to.include({ code: expected, providerCode: String(code) });
    });
  }

  it('with a wrong token is rejected, and the error does not contain the token', async () => {
    const error = await deliver(MESSAGE, { from: '+1', authToken: 'hidden-token' });
    expect(error).to.include({ code: 'rejected' });
    expect(`${String(error)} ${JSON.stringify(error)}`).not.to.contain('hidden-token');
  });

  it('is given up after the time limit', async () => {
    twilio.behave('silence');
    expect(await deliver(MESSAGE, { from: '+1' }, 200)).to.include({ code: 'unavailable' });
    const check = checkSmsAccount({ ...TWILIO, apiUrl: twilio.url }, outbound, 200);
    expect(await check.catch((error: unknown) => error)).to.include({ failure: 'timeout' });
  });

  it('is not sent to an address that the operator does not allow', async () => {
    const closed = createOutbound({ rules: outboundRules([]) });
    const twilioRequest = twilio.asked();
    const error = await createSmsTransport({ ...TWILIO, apiUrl: twilio.url, from: '+1' }, closed)
      .deliver(MESSAGE, 'an-id')
      .catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'unavailable' });
    expect(twilio.asked()).to.equal(twilioRequest);
  });

  it('fails where nobody listens', async () => {
    expect(await deliver(MESSAGE, { from: '+1', apiUrl: 'http://127.0.0.1:1' })).to.include({
      code: 'unavailable',
    });
  });
});
