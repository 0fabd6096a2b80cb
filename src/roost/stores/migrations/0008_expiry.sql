-- What waits for an agent and expires is given up then, by a timer. What was posted before there was one gets it now.

INSERT INTO timers (address, key, due)
SELECT address, 'expiry', min(expires) FROM inbox WHERE expires IS NOT NULL AND address <> '' GROUP BY address;
