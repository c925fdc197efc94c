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

_OPTIMIZERS = "SGD|Adam\\w*|Nadam|RMSprop|Ftrl|Ada\\w+|Lion|Lamb|LossScaleOptimizer"
_CALLBACKS = "TensorBoard|EarlyStopping|ReduceLROnPlateau|CSVLogger|BackupAndRestore|ModelCheckpoint"
_PARTS = (
    "MaxNorm|UnitNorm|L1|L2|L1L2|RandomNormal|RandomUniform|TruncatedNormal|VarianceScaling|(?:Glorot|He|Lecun)\\w+"
)
_KERAS_2_NAMES = (
    "reset_states|predict_proba|to_yaml|total_loss|state_updates|_get_distribution_strategy|_create_all_weights|_decayed_lr"
    "|get_gradients|add_update|get_(?:input|output)_(?:shape_)?at|use_sequence_api|fit_generator|evaluate_generator"
    "|predict_generator|predict_classes|get_updates"
)
_KERAS_2_MESSAGES = (
    rf"object has no attribute '(?:{_KERAS_2_NAMES})'"
    rf"|'(?:{_OPTIMIZERS})' object has no attribute '(?:lr|minimize|weights|get_weights|decay|_hyper)'"
    r"|'(?:Dense|Conv\w+|LSTM|GRU|Flatten|Embedding)' object has no attribute '(?:input|output)_shape'"
    r"|'KerasTensor' object has no attribute"
    r"|Arguments not recognized: \{|Unrecognized keyword arguments: \["
    rf"|(?:Trainer|BaseOptimizer|Model|{_CALLBACKS}|{_PARTS})\.\w+\(\) got an unexpected keyword argument"
    r"|(?:Dense|Dropout|Conv\w+)\.__init__\(\) missing \d required positional argument"
    r"|Expected .?\w*metrics.? argument to be a list, tuple, or"
    r"|Could not interpret initializer identifier: \(|Could not interpret optimizer identifier: <tensorflow"
    r"|`add_metric\(\)` method is deprecated|Only instances of .?keras\.Layer.? can be added"
    r"|Invalid value for argument `reduction`|Could not deserialize 'keras"
    r"|pass this dataset to .{0,3}ClusterCoordinator\.create_per_worker_dataset"
    r"|module 'tensorflow\.keras\.[\w.]+' has no attribute"
    r"|add_weight\(\) got multiple values for argument|No module named 'tensorflow\.python\.keras"
)
_ADDONS = (
    "TensorFlow Addons ended with TensorFlow 2.15 and Keras 2: replace what the program takes from it, or use TensorFlow 2.15, by "
    '`container={{"image": "tensorflow/tensorflow:2.15.0"}}`.'
)

API_REMEDIES = (
    (r"No module named 'tensorflow_addons", _ADDONS),
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
            rf"|{_KERAS_2_MESSAGES}"
            r"|`name` must be passed as a keyword argument\. Received: add_weight"
        ),
        _KERAS_2,
    ),
)
"""Pattern to remedy, the most particular first."""
