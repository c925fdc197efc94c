"""What to do about programs for earlier versions of TensorFlow and Keras, by the error that they end with.

The messages are those of TensorFlow 2.16 to 2.21 with Keras 3. docs/how-to/keras.md has the same for readers.
"""

_KERAS_2 = (
    'The program is written for Keras 2, and this TensorFlow has Keras 3: set `requirements=["tf_keras"]` and '
    '`env={{"TF_USE_LEGACY_KERAS": "1"}}`. A program that imports `keras` itself has to import `tf_keras` instead.'
)
_NO_KERAS_2 = "`TF_USE_LEGACY_KERAS` is set, and Keras 2 is not installed: add `tf_keras` to `requirements`."
_ESTIMATOR = (
    'TensorFlow 2.16 and later have no Estimator: use TensorFlow 2.15, by `container={{"image": "tensorflow/tensorflow:2.15.0"}}`, '
    'or on `local` by `requirements=["tensorflow==2.15.*"]` with Python 3.9 to 3.11.'
)
_CONTRIB = "TensorFlow 2 has no `tf.contrib`: the program needs TensorFlow 1, or a change of what it takes from there."
_TENSORFLOW_1 = "The program is written for TensorFlow 1: begin it with `import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()`."

_OF_TENSORFLOW_1 = (
    "placeholder|Session|ConfigProto|GPUOptions|InteractiveSession|app|flags|logging|gfile|layers|get_variable|variable_scope"
    "|global_variables_initializer|reset_default_graph|get_default_graph|set_random_seed|FIFOQueue|truncated_normal|log"
)
_OF_TRAIN = (
    "Server|Supervisor|MonitoredTrainingSession|replica_device_setter|SyncReplicasOptimizer|Saver|get_or_create_global_step"
    "|[A-Za-z]*Optimizer"
)

API_REMEDIES = (
    (r"ImportError: Keras cannot be imported", _NO_KERAS_2),
    (
        (
            r"module '(?:tensorflow|tensorflow\._api\S*|tensorflow\.keras)' has no attribute 'estimator'"
            r"|cannot import name 'estimator' from 'tensorflow|No module named 'tensorflow(?:\.python\.estimator|_estimator)"
        ),
        _ESTIMATOR,
    ),
    (r"module 'tensorflow' has no attribute 'contrib'|No module named 'tensorflow\.contrib", _CONTRIB),
    (
        (
            rf"module 'tensorflow' has no attribute '(?:{_OF_TENSORFLOW_1})'"
            rf"|module 'tensorflow\S*\.train' has no attribute '(?:{_OF_TRAIN})'"
        ),
        _TENSORFLOW_1,
    ),
    (
        (
            r"module 'keras(?:\.[\w.]*)?' has no attribute|No module named '(?:tensorflow\.)?keras\."
            r"|cannot import name '\w+' from '(?:tensorflow\.)?keras"
            r"|is not (?:supported in|available with) Keras 3|Keras 3 only supports"
            r"|Unrecognized keyword arguments passed to|Argument\(s\) not recognized: \{"
            r"|Invalid filepath extension for saving|The filename must end in `\.weights\.h5`"
            r"|filepath provided must end in `\.(?:keras|weights\.h5)`|A KerasTensor cannot be used as input to a TensorFlow function"
            r"|object has no attribute '(?:fit_generator|evaluate_generator|predict_generator|predict_classes|get_updates)'"
            r"|(?:Trainer|BaseOptimizer|ModelCheckpoint)\.\w+\(\) got an unexpected keyword argument"
            r"|`name` must be passed as a keyword argument\. Received: add_weight"
        ),
        _KERAS_2,
    ),
)
"""Pattern to remedy, the most particular first."""
